"""The emulation of AWS: resources, functions, queues, schedules, rights."""
