"""A connection as HTTP/1.1 sees it: `messages` reads, `events` cuts streams, `exchange` joins both directions."""
