#!/usr/bin/env node
import { demandNode } from './install/node.mjs';

demandNode();
import('./launcher/cli.mjs').then(({ main }) => main(process.argv.slice(2)));
