// Uploads and projects on one stack: first parts stall (the entries of their record are counted), then parts
// die.
import './outage/refused.ts';
import './batch/kills.ts';
