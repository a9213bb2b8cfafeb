#include "jobq.h"

#include <stdio.h>
#include <stdlib.h>

char *jobq_format(const char *format, va_list args) {
    va_list again;
    va_copy(again, args);
    int length = vsnprintf(NULL, 0, format, args);
    char *text = length < 0 ? NULL : malloc((size_t)length + 1);
    if (!text)
        abort();
    vsnprintf(text, (size_t)length + 1, format, again);
    va_end(again);
    return text;
}

#define ANSWER(answer_kind, delay)                                                             \
    va_list args;                                                                              \
    va_start(args, format);                                                                    \
    struct jobq_answer answer = {answer_kind, jobq_format(format, args), delay};               \
    va_end(args);                                                                              \
    return answer

struct jobq_answer jobq_done(const char *format, ...) {
    ANSWER(JOBQ_DONE, 0);
}

struct jobq_answer jobq_retry(const char *format, ...) {
    ANSWER(JOBQ_RETRY, 0);
}

struct jobq_answer jobq_retry_after(uint64_t after_ms, const char *format, ...) {
    ANSWER(JOBQ_RETRY_AFTER, after_ms);
}

struct jobq_answer jobq_fatal(const char *format, ...) {
    ANSWER(JOBQ_FATAL, 0);
}

struct jobq_answer jobq_snooze(uint64_t after_ms) {
    struct jobq_answer answer = {JOBQ_SNOOZE, NULL, after_ms};
    return answer;
}
