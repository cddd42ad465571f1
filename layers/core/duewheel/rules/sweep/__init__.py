"""The sweep: what of a second is lost, the audit, statistics by the minute."""
