"""What a user may type: the commands by topic, their options and their help. The work is done elsewhere."""
