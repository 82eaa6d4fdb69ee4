"""Real nodes under real faults, judged by what their clients saw (`make chaos`)."""
