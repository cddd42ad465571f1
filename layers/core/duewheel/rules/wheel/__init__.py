"""Addresses on the wheel, timing, shards, leader election and messages of the queues."""
