"""The answer of ``drain`` in words: what differs from that of a check."""
