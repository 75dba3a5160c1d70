// Request and answer common to all systems.
export const WORDS = 'set a timer for ten minutes and play some music';
export const MODEL = 'bench-en';
export const REVISION = `sha256:${'0'.repeat(64)}`;
/** Path of the requests: OpenAI's address of transcriptions. */
export const PATH = '/v1/audio/transcriptions';
