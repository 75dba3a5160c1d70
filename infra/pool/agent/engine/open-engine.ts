import type { EngineSettings } from '../settings/settings.ts';
import type { Engine } from './engine.ts';
import { createKserveEngine } from './kserve.ts';
import { createSpeechServer } from './openai/speech-server.ts';

/** Opens the engine of the settings. `health`: as in `createKserveEngine`. */
export const openEngine = (settings: EngineSettings, connections: number, health?: 'ready' | 'live'): Engine =>
  settings.kind === 'openai'
    ? createSpeechServer(settings, connections)
    : createKserveEngine(settings.url, connections, health);
