// The entry of the Worker: the routes, and the classes of its Durable Objects.
import { answerRequest } from './routes.ts';

export { Roster } from './pool/roster.ts';
export { Stream } from './stream/stream.ts';
export { Gate } from './tenant/gate.ts';

export default { fetch: answerRequest };
