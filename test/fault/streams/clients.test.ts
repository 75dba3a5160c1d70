// Streams of clients that leave, that reach a bound, and that send much at once: on one stack, one after the other.
import './leaving.ts';
import './bounds.ts';
import './backlog.ts';
