// Reads single members of a JSON object. For more than flat payloads, put a JSON library of your choice in its place.
#ifndef JSON_H
#define JSON_H

#include <stddef.h>
#include <stdint.h>

enum json_found { JSON_OK, JSON_ABSENT, JSON_BAD };

// The member `key` of the JSON object `text`. *value is only set for JSON_OK.
// JSON_BAD: it is not of this type, does not fit, or the text is no JSON object.
enum json_found json_integer(const char *text, const char *key, int64_t *value);
enum json_found json_string(const char *text, const char *key, char *value, size_t size);

#endif
