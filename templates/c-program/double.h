#ifndef DOUBLE_H
#define DOUBLE_H

#include <stdbool.h>
#include <stddef.h>

// Doubles the `n` of a payload such as {"n": 2}. Returns false and writes a message when it cannot.
bool double_payload(const char *payload, long *doubled, char *message, size_t size);

#endif
