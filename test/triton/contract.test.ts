import { runSuite } from '../contract/engine/suite.ts';
import { triton } from './triton.ts';

runSuite(triton);
