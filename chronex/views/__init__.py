"""Read models: what people ask about jobs and expressions, as plain data without a terminal."""
