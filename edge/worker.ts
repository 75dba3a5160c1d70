// The entry of the Worker: the app, and the classes of its Durable Objects.
import { app } from './routes.ts';

export { Roster } from './pool/roster.ts';
export { Stream } from './stream/stream.ts';
export { Gate } from './tenant/gate.ts';

export default { fetch: app.fetch };
