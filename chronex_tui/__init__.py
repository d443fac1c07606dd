"""The dashboard: pure view models first, then the widgets and screens that show them."""
