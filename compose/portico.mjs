#!/usr/bin/env node
import { demandNode } from './node.mjs';

demandNode();
import('./cli.mjs').then(({ main }) => main(process.argv.slice(2)));
