#ifndef DOUBLE_H
#define DOUBLE_H

#include <stdbool.h>
#include <stddef.h>

// Doubles the `n` of a payload such as {"n": 2}. On failure, returns false and writes a message.
bool double_payload(const char *payload, long *doubled, char *message, size_t size);

#endif
