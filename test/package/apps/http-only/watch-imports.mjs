// Given to Node with --import: writes down, in the file IMPORTS_FILE, what the library imports while the app runs.
import { register } from 'node:module';

register('./watch-imports.hooks.mjs', import.meta.url);
