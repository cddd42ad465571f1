"""What plays AWS: resources, functions, queues, schedules, rights."""
