/** Tries to write the next entry of a model's log; each failure means that another writer succeeded. */
export const MODEL_TRIES_MAX = 8;
/** Entries of one answer of a model's log. */
export const MODEL_LOG_ROWS_MAX = 200;
