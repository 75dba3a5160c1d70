/** Requests in one model's queue where its configuration names no maximum; 0 means unlimited there. */
export const ENGINE_QUEUED_REQUESTS_MAX = 1024;
