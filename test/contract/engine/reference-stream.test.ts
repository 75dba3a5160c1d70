import path from 'node:path';
import { startEmbedded } from './embedded.ts';
import { describeReferenceStream, streamModels } from './reference-stream.ts';

const repository = path.resolve(import.meta.dirname, '../../../infra/pool/models/repository');

describeReferenceStream('the embedded engine', () => startEmbedded(repository, streamModels));
