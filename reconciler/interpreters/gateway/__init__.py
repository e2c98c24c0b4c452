"""Kinds of the Gateway API, which lead traffic to Services, and what their controllers say of them."""
