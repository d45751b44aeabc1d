#include "compression/sample_starts.h"

namespace pith {
namespace {

constexpr SampleStart kRawStarts[] = {
    {"prose", "The"},
    {"prose", "It was"},
    {"prose", "In the"},
    {"prose", "She opened the door and"},
    {"prose", "Once upon a time"},
    {"prose", "The history of the"},
    {"prose", "According to a new study"},
    {"prose", "Chapter 1\n\n"},
    {"prose", "Abstract\n\nWe"},
    {"prose", "Dear Sir or Madam,\n\n"},
    {"prose", "Ingredients:\n"},
    {"prose", "Breaking news:"},
    {"prose", "I have always"},
    {"prose", "For sale:"},
    {"prose", "The company announced"},
    {"prose", "He said that"},
    {"code", "#include <vector>\n\n"},
    {"code", "import numpy as np\n\n"},
    {"code", "def"},
    {"code", "class"},
    {"code", "fn main() {\n"},
    {"code", "package main\n\nimport"},
    {"code", "public class"},
    {"code", "SELECT"},
    {"code", "<!DOCTYPE html>\n<html>"},
    {"code", "{\n  \"name\":"},
    {"code", "#!/bin/bash\n\n"},
    {"code", "const express = require('express');\n"},
    {"code", "CREATE TABLE"},
    {"code", "// Returns the"},
    {"code", "#!/usr/bin/env python3\n\"\"\""},
    {"code", "interface"},
    {"math", "Theorem 1. Let"},
    {"math", "Proof. Suppose that"},
    {"math", "Solve for x:"},
    {"math", "Problem: A train leaves"},
    {"math", "\\begin{equation}\n"},
    {"math", "The derivative of"},
    {"math", "Step 1:"},
    {"math", "If n is an even number, then"},
    {"questions", "Q: What is"},
    {"questions", "Question: Why do"},
    {"questions", "Q: How can I"},
    {"questions", "Which of the following"},
    {"questions", "FAQ\n\n1."},
    {"questions", "1. What"},
    {"dialogue", "\"I don't know,\""},
    {"dialogue", "A: Hello!\nB:"},
    {"dialogue", "Interviewer:"},
    {"dialogue", "MARY:"},
    {"dialogue", "[10:02] alex:"},
    {"dialogue", "User: Hi, can you help me"},
    {"multilingual", "Die Geschichte der"},
    {"multilingual", "Il \u00E9tait une fois"},  // Il était une fois
    {"multilingual", "En un lugar"},
    {"multilingual", "O que"},
    {"multilingual", "L'Italia \u00E8"},                              // L'Italia è
    {"multilingual", "\u0412 \u043D\u0430\u0447\u0430\u043B\u0435"},  // В начале
    {"multilingual", "\u4ECA\u5929"},                                 // 今天
    {"multilingual", "\u4E2D\u56FD\u7684"},                           // 中国的
    {"multilingual", "\u65E5\u672C\u306E"},                           // 日本の
    {"multilingual", "\uC548\uB155\uD558\uC138\uC694."},              // 안녕하세요.
    {"multilingual", "\u0641\u064A \u0639\u0627\u0645"},              // في عام
    {"multilingual", "\u092F\u0939"},                                 // यह
    {"multilingual", "T\u00FCrkiye"},                                 // Türkiye
    {"multilingual", "Ng\u00E0y"},                                    // Ngày
};

constexpr SampleStart kUserMessages[] = {
    {"prose", "Write a short story about a lighthouse keeper."},
    {"prose", "Explain how a refrigerator works."},
    {"prose", "Summarize the causes of the First World War."},
    {"prose", "Write a polite letter that asks a landlord to repair the heating."},
    {"prose", "What should I pack for a week in the mountains?"},
    {"prose", "Describe a busy market in the morning."},
    {"prose", "Give me a recipe for vegetable soup."},
    {"prose", "Write a poem about the sea in autumn."},
    {"prose", "Compare trains and airplanes for short trips."},
    {"prose", "How do vaccines work?"},
    {"prose", "Write a product description for a wooden chair."},
    {"prose", "Explain inflation to a ten-year-old."},
    {"prose", "List five habits that help one sleep better, with reasons."},
    {"prose", "Rewrite this more formally: hey, can't make it tmrw, sorry!"},
    {"code", "Write a Python function that checks whether a string is a palindrome."},
    {"code", "Implement a binary search in C++."},
    {"code", "Write a SQL query that finds the ten customers with the most orders."},
    {"code", "What is the difference between a process and a thread?"},
    {"code", "Write a JavaScript function that debounces another function."},
    {"code", "Explain what this does: `find . -name '*.log' -mtime +7 -delete`"},
    {"code", "Write a Rust function that counts the words of a file."},
    {"code", "How do I undo the last commit in git?"},
    {"code", "Write a unit test for a stack in Java."},
    {"code", "Fix the bug: `for (int i = 0; i <= n; i++) sum += a[i];`"},
    {"code", "Write a regular expression that matches dates like 2024-05-31."},
    {"code", "Implement an LRU cache in Go."},
    {"code", "Write HTML and CSS for a page with two columns."},
    {"code", "Write a bash script that backs up a folder."},
    {"math", "Solve 3x + 7 = 22 step by step."},
    {"math", "What is the sum of the first 100 positive integers?"},
    {"math", "Prove that the square root of 2 is irrational."},
    {"math", "A shirt costs 40 dollars after a discount of 20 percent. What did it cost before?"},
    {"math", "Find the derivative of x^2 * sin(x)."},
    {"math", "How many ways are there to choose 3 books out of 8?"},
    {"math", "What is the probability that two dice sum to 9?"},
    {"math", "Compute 17 * 24 and show your work."},
    {"questions", "What is the capital of Australia?"},
    {"questions", "Who wrote War and Peace?"},
    {"questions", "Why is the sky blue?"},
    {"questions", "How many bones does an adult human have?"},
    {"questions", "What causes tides?"},
    {"questions", "When was the printing press invented?"},
    {"questions", "Is a tomato a fruit or a vegetable?"},
    {"questions", "What is photosynthesis?"},
    {"dialogue", "Hello!"},
    {"dialogue", "I feel tired all the time lately. Any advice?"},
    {"dialogue", "Can you pretend to be a pirate?"},
    {"dialogue", "Let us play a game of twenty questions."},
    {"dialogue", "Tell me a joke."},
    {"dialogue", "I have a job interview tomorrow and I am nervous."},
    {"multilingual", "Erkl\u00E4re mir, wie ein Regenbogen entsteht."},  // Erkläre mir, wie ein Regenbogen entsteht.
    {"multilingual", "Raconte-moi une courte histoire."},
    {"multilingual", "\u00BFCu\u00E1les son los beneficios de leer?"},  // ¿Cuáles son los beneficios de leer?
    {"multilingual", "Quais s\u00E3o os maiores rios do Brasil?"},      // Quais são os maiores rios do Brasil?
    {"multilingual",
     "\u0420\u0430\u0441\u0441\u043A\u0430\u0436\u0438 \u043E \u0411\u0430\u0439\u043A\u0430\u043B\u0435."},  // Расскажи о Байкале.
    {"multilingual", "\u8BF7\u4ECB\u7ECD\u4E00\u4E0B\u5317\u4EAC\u3002"},                                     // 请介绍一下北京。
    {"multilingual",
     "\u65E5\u672C\u306E\u56DB\u5B63\u306B\u3064\u3044\u3066\u6559\u3048\u3066\u304F\u3060\u3055\u3044\u3002"},  // 日本の四季について教えてください。
    {"multilingual",
     "\u0645\u0627 \u0647\u064A \u0641\u0648\u0627\u0626\u062F \u0627\u0644\u0631\u064A\u0627\u0636\u0629\u061F"},  // ما هي فوائد الرياضة؟
    {"multilingual",
     "\u092D\u093E\u0930\u0924 \u0915\u0940 \u0930\u093E\u091C\u0927\u093E\u0928\u0940 \u0915\u094D\u092F\u093E \u0939\u0948?"},  // भारत की
                                                                                                                                  // राजधानी
                                                                                                                                  // क्या है?
    {"multilingual", "Translate to French: Where is the train station?"},
};

}  // namespace

absl::Span<const SampleStart> RawStarts() { return kRawStarts; }

absl::Span<const SampleStart> UserMessages() { return kUserMessages; }

}  // namespace pith
