import path from 'node:path';
import { fileURLToPath } from 'node:url';

/** The repository: entries and models of the parts are named relative to it. */
export const ROOT = path.resolve(fileURLToPath(import.meta.url), '../../..');
