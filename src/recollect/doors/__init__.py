"""Doors: they parse, call a flow or a capability, and shape a contract's answer."""
