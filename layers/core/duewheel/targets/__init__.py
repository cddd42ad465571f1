"""One module per means of delivery; each answers with an `Outcome`, never an exception."""
