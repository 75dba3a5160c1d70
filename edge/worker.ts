// The entry of the Worker: the app, and the classes of its Durable Objects.
import { app } from './routes.ts';

export { Gate } from './ledger/gate.ts';
export { Roster } from './routing/roster.ts';
export { Stream } from './stream/stream.ts';

export default { fetch: app.fetch };
