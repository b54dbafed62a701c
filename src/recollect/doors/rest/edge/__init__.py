"""What every request passes before its route: connections, bodies, keys."""
