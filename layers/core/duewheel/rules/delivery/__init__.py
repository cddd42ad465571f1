"""Delivery: page leases, the circuit breaker, the slow lane, parked tasks."""
