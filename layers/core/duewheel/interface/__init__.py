"""The shapes of requests and answers: between the handlers and the workflows, free of AWS."""
