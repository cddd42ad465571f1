"""The structured log. Every record has a stable `action`; none carries a payload or a secret."""

from aws_lambda_powertools import Logger

logger = Logger()
