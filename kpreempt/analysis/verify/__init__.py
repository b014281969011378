"""Whether real schedulers did what is predicted from the state just before they did it."""
