"""What the cognitive toolset stores."""
