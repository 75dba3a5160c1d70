// Addresses of other services' clients that are not built: 501 in the form of the client's protocol.
import { refuse } from '../../shared/refusal.ts';
import type { Handler } from '../context.ts';
import { refuseWith } from '../http/refuse.ts';
import { refuseAsDeepgram } from './deepgram-refuse.ts';

const openAi = (feature: string): Handler => {
  const refusal = refuse('route_unbuilt', { feature });
  return async () => refuseWith(refusal);
};

const deepgram = (feature: string): Handler => {
  const refusal = refuse('route_unbuilt', { feature });
  return async (_, { id }) => refuseAsDeepgram(refusal, id);
};

export const unbuiltRoutes: Readonly<Record<string, Handler>> = {
  '/v1/audio/translations': openAi('Translation'),
  '/v1/realtime/translations': openAi('Translation'),
  '/v1/chat/completions': openAi('Chat'),
  '/v1/completions': openAi('Completion of texts'),
  '/v1/responses': openAi('Chat'),
  '/v1/embeddings': openAi('Embedding'),
  '/v1/read': deepgram('Analysis of texts'),
  '/v1/agent/*': deepgram('The voice agent'),
  '/v2/listen': deepgram('The second version of /v1/listen'),
};
