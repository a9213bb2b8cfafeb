// Reads single members of a JSON object. Replace it by a JSON library if your payloads aren't flat.

#include "jobq.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define MAX_DEPTH 64

static const char *skip_space(const char *at) {
    while (*at == ' ' || *at == '\t' || *at == '\n' || *at == '\r')
        at++;
    return at;
}

// Each skip_… takes the start of a token and returns its end, or NULL if there is no such token.

static const char *skip_string(const char *at) {
    if (*at++ != '"')
        return NULL;
    for (; *at != '"'; at++) {
        if ((unsigned char)*at < 0x20 || (*at == '\\' && *++at == '\0'))
            return NULL;
    }
    return at + 1;
}

static const char *skip_word(const char *at) {
    size_t length = strcspn(at, " \t\n\r,]}");
    bool number = length > 0 && strspn(at, "+-.0123456789eE") == length;
    bool word = (length == 4 && (memcmp(at, "true", 4) == 0 || memcmp(at, "null", 4) == 0)) ||
                (length == 5 && memcmp(at, "false", 5) == 0);
    return number || word ? at + length : NULL;
}

static const char *skip_value(const char *at, int depth);

static const char *skip_list(const char *at, char close, int depth) {
    at = skip_space(at + 1);
    if (*at == close)
        return at + 1;
    for (;;) {
        if (close == '}') {
            at = skip_string(skip_space(at));
            if (!at || *(at = skip_space(at)) != ':')
                return NULL;
            at++;
        }
        at = skip_value(skip_space(at), depth + 1);
        if (!at)
            return NULL;
        at = skip_space(at);
        if (*at == close)
            return at + 1;
        if (*at++ != ',')
            return NULL;
    }
}

static const char *skip_value(const char *at, int depth) {
    if (depth > MAX_DEPTH)
        return NULL;
    switch (*at) {
    case '{': return skip_list(at, '}', depth);
    case '[': return skip_list(at, ']', depth);
    case '"': return skip_string(at);
    default: return skip_word(at);
    }
}

// Sets *value to the start of the member's value. The first member with that name counts.
static enum json_found find(const char *text, const char *key, const char **value) {
    const char *at = skip_space(text);
    const char *end = skip_value(at, 0);
    if (*at != '{' || !end || *skip_space(end) != '\0')
        return JSON_BAD;

    at = skip_space(at + 1);
    while (*at != '}') {
        const char *name = at;
        at = skip_string(at);
        bool found = (size_t)(at - name) == strlen(key) + 2 && memcmp(name + 1, key, strlen(key)) == 0;
        at = skip_space(skip_space(at) + 1);
        if (found) {
            *value = at;
            return JSON_OK;
        }
        at = skip_space(skip_value(at, 1));
        if (*at == ',')
            at = skip_space(at + 1);
    }
    return JSON_ABSENT;
}

enum json_found json_integer(const char *text, const char *key, int64_t *value) {
    const char *at = NULL;
    enum json_found found = find(text, key, &at);
    if (found != JSON_OK)
        return found;
    char *end;
    errno = 0;
    long long number = strtoll(at, &end, 10);
    if (end == at || errno != 0 || !strchr(" \t\n\r,}", *end))
        return JSON_BAD;
    *value = number;
    return JSON_OK;
}

// Writes a code point as UTF-8 and returns how many bytes it took.
static size_t encode(unsigned long point, char *out) {
    if (point < 0x80) {
        out[0] = (char)point;
        return 1;
    }
    size_t length = point < 0x800 ? 2 : point < 0x10000 ? 3 : 4;
    for (size_t i = length - 1; i > 0; i--, point >>= 6)
        out[i] = (char)(0x80 | (point & 0x3f));
    out[0] = (char)((0xf00 >> length) | point);
    return length;
}

// Reads the number after \u at *at, and advances *at past it.
static bool hex4(const char **at, unsigned long *number) {
    char digits[5] = {0};
    strncpy(digits, *at, 4);
    if (strspn(digits, "0123456789abcdefABCDEF") != 4)
        return false;
    *number = strtoul(digits, NULL, 16);
    *at += 4;
    return true;
}

// Reads the code point after \u at *at, which may be a surrogate pair.
static bool unescape(const char **at, unsigned long *point) {
    unsigned long low;
    if (!hex4(at, point) || *point == 0 || (*point >= 0xdc00 && *point < 0xe000))
        return false;
    if (*point < 0xd800 || *point >= 0xe000)
        return true;
    if (strncmp(*at, "\\u", 2) != 0)
        return false;
    *at += 2;
    if (!hex4(at, &low) || low < 0xdc00 || low >= 0xe000)
        return false;
    *point = 0x10000 + ((*point - 0xd800) << 10) + (low - 0xdc00);
    return true;
}

enum json_found json_string(const char *text, const char *key, char *value, size_t size) {
    const char *at = NULL;
    enum json_found found = find(text, key, &at);
    if (found != JSON_OK)
        return found;
    if (*at++ != '"')
        return JSON_BAD;

    size_t length = 0;
    char bytes[4];
    while (*at != '"') {
        size_t count = 1;
        bytes[0] = *at++;
        if (bytes[0] == '\\') {
            static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
            char letter = *at++;
            const char *escape = strchr(from, letter);
            unsigned long point;
            if (escape)
                bytes[0] = to[escape - from];
            else if (letter == 'u' && unescape(&at, &point))
                count = encode(point, bytes);
            else
                return JSON_BAD;
        }
        if (length + count >= size)
            return JSON_BAD;
        memcpy(value + length, bytes, count);
        length += count;
    }
    value[length] = '\0';
    return JSON_OK;
}
