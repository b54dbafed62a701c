"""Doors: the interfaces, which parse a request, call a flow or a capability, and build a contract's answer."""
