"""Search over the circuits of servers with few ports: enumeration with bounds, exchanges, routing by LP."""
