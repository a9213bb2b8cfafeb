// Reads single members of a JSON object. Replace it by a JSON library if your payloads aren't flat.
#ifndef JSON_H
#define JSON_H

#include <stddef.h>
#include <stdint.h>

enum json_found { JSON_OK, JSON_ABSENT, JSON_BAD };

// Reads the member `key` of the JSON object `text`. Sets *value only for JSON_OK.
// JSON_BAD: the member has another type or doesn't fit, or the text isn't a JSON object.
enum json_found json_integer(const char *text, const char *key, int64_t *value);
enum json_found json_string(const char *text, const char *key, char *value, size_t size);

#endif
