// What the parts of the addon share: the number of its interface, which index.js compares with the one that it speaks.
// Raise both together whenever a function changes.
#pragma once

constexpr int kInterfaceVersion = 2;
