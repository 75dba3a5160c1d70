/**
 * Prefix of a marker with which the local storage emulator lists the blobs of a container by change: those
 * that changed after the number behind it, with a marker for the next listing. The service itself has no such
 * listing; it sends events.
 */
export const CHANGED_AFTER = 'changed-after:';
