// Connects handler.c to the bindings in gen/. The only file that needs WebAssembly.

#include "../gen/job_handler.h"
#include "jobq.h"

#include <stdlib.h>
#include <string.h>

static char *to_text(job_handler_string_t string) {
    char *text = malloc(string.len + 1);
    if (!text)
        abort();
    if (string.len > 0)
        memcpy(text, string.ptr, string.len);
    text[string.len] = '\0';
    return text;
}

static job_handler_string_t borrow(const char *text) {
    job_handler_string_t string = {(uint8_t *)text, strlen(text)};
    return string;
}

bool exports_jobq_handler_handler_handle(exports_jobq_handler_handler_job_t *from_host, job_handler_string_t *result,
                                         exports_jobq_handler_handler_job_error_t *error) {
    struct jobq_job job = {
        .id = to_text(from_host->id),
        .job_type = to_text(from_host->job_type),
        .payload = to_text(from_host->payload),
        .attempt = from_host->attempt,
        .max_attempts = from_host->max_attempts,
    };
    bool nul = strlen(job.payload) != from_host->payload.len;
    exports_jobq_handler_handler_job_free(from_host);

    struct jobq_answer answer = nul ? jobq_fatal("bad payload: it contains a NUL character") : handle(&job);
    free((char *)job.id);
    free((char *)job.job_type);
    free((char *)job.payload);

    // The host frees the string.
    switch (answer.kind) {
    case JOBQ_DONE:
        *result = borrow(answer.text);
        return true;
    case JOBQ_RETRY:
        error->tag = JOBQ_HANDLER_TYPES_JOB_ERROR_RETRY;
        error->val.retry = borrow(answer.text);
        return false;
    case JOBQ_RETRY_AFTER:
        error->tag = JOBQ_HANDLER_TYPES_JOB_ERROR_RETRY_AFTER;
        error->val.retry_after.message = borrow(answer.text);
        error->val.retry_after.after_ms = answer.after_ms;
        return false;
    case JOBQ_FATAL:
        error->tag = JOBQ_HANDLER_TYPES_JOB_ERROR_FATAL;
        error->val.fatal = borrow(answer.text);
        return false;
    case JOBQ_SNOOZE:
        error->tag = JOBQ_HANDLER_TYPES_JOB_ERROR_SNOOZE;
        error->val.snooze = answer.after_ms;
        return false;
    }
    abort();
}

void jobq_log(enum jobq_level level, const char *format, ...) {
    va_list args;
    va_start(args, format);
    char *line = jobq_format(format, args);
    va_end(args);
    job_handler_string_t message = borrow(line);
    jobq_handler_log_write((jobq_handler_log_level_t)level, &message);
    free(line);
}

uint64_t jobq_remaining_ms(void) {
    return jobq_handler_context_remaining_ms();
}

bool jobq_is_cancelled(void) {
    return jobq_handler_context_is_cancelled();
}

void jobq_progress(uint8_t percent, const char *message) {
    job_handler_string_t text = borrow(message);
    jobq_handler_context_progress(percent, &text);
}

char *jobq_enqueue(const struct jobq_new_job *job, char **error) {
    jobq_handler_queue_new_job_t new_job = {
        .job_type = borrow(job->job_type),
        .payload = borrow(job->payload),
        .priority = {job->priority != NULL, job->priority ? *job->priority : 0},
        .delay_ms = {job->delay_ms != 0, job->delay_ms},
        .max_attempts = {job->max_attempts != 0, job->max_attempts},
        .unique_key = {job->unique_key != NULL, borrow(job->unique_key ? job->unique_key : "")},
    };
    job_handler_string_t id;
    jobq_handler_queue_enqueue_error_t refusal;
    *error = NULL;
    if (jobq_handler_queue_enqueue(&new_job, &id, &refusal)) {
        char *text = to_text(id);
        job_handler_string_free(&id);
        return text;
    }
    *error = to_text(refusal.tag == JOBQ_HANDLER_QUEUE_ENQUEUE_ERROR_DENIED ? refusal.val.denied : refusal.val.invalid);
    jobq_handler_queue_enqueue_error_free(&refusal);
    return NULL;
}
