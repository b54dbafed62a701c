"""The cognitive toolset: insights, working memory, episodes, the graph, judges and drift."""
