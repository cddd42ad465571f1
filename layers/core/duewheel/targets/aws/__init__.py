"""Call Lambda, SQS, SNS and EventBridge."""
