"""Embedded member clusters on loopback. Shares no logic with the reconciler, so that a shared bug cannot hide."""
