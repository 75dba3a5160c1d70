import { runScenarios } from './matrix.ts';
import { groups } from './scenarios.ts';

runScenarios(groups.engines);
