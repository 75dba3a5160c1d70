import { embedded } from './embedded.ts';
import { runSuite } from './suite.ts';

runSuite(embedded);
