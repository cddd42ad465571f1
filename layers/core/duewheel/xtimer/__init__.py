"""The interface of xTimer, for its clients. The timers are those of `/v1/timers`."""
