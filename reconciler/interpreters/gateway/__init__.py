"""Kinds of the Gateway API, which lead traffic to Services, and the conditions of their controllers."""
