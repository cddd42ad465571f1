"""The only room with DynamoDB expressions and SQS calls."""
