/** Changes of one transaction, and rows of one scan: the limit of Azure Tables. */
export const TRANSACTION_ROWS_MAX = 100;
/** Tries of one call of blobs or tables, the first included; callers bring their own deadline. */
export const STORAGE_TRIES_MAX = 3;
/** First pause between two tries; the library's own default is four seconds. */
export const STORAGE_PAUSE_MS = 200;
